// Keyboard in the inbox: j and k move, a accepts, d declines, r goes to "somebody else", o to the
// details.
// Everything here can be done without it: forms are forms, links are links.
const cards = () => [...document.querySelectorAll("[data-card]")];
const typing = (target) => target.closest("input, textarea, select");

function move(step) {
  const all = cards();
  if (!all.length) return;
  const here = all.findIndex((card) => card.contains(document.activeElement));
  const next = all[Math.min(Math.max(here + step, 0), all.length - 1)];
  next.querySelector("h2 a").focus();
  next.scrollIntoView({ block: "nearest" });
}

function press(name) {
  const card = document.activeElement.closest("[data-card]");
  card?.querySelector(`[data-do="${name}"]`)?.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    a: () => press("accepted"),
    d: () => press("declined"),
    r: () => press("reassigned"),
    o: () => document.activeElement.closest("[data-card]")?.querySelector("[data-details]")?.click(),
  };
  if (actions[event.key]) {
    event.preventDefault();
    actions[event.key]();
  }
});

for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}

// Say when something new is there; the reader decides when to load it.
const note = document.querySelector("[data-newest]");
if (note) {
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("/inbox/newest", { headers: { accept: "application/json" } });
      if (!answer.ok) return;
      const { newest } = await answer.json();
      if (newest > Number(note.dataset.newest)) note.hidden = false;
    } catch {
      // No connection: the next look will tell.
    }
  };
  setInterval(look, 5000);
}

// Moments in the reader's own time zone, on hovering.
for (const time of document.querySelectorAll("time")) {
  time.title = new Date(time.dateTime).toLocaleString();
}

// Names that fit what is being typed.
for (const input of document.querySelectorAll("input[data-people]")) {
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      try {
        const answer = await fetch(`/people/find?q=${encodeURIComponent(input.value)}`);
        if (!answer.ok) return;
        const names = await answer.json();
        input.list.replaceChildren(...names.map((name) => new Option(name, name)));
      } catch {
        // No connection: names can still be typed in full.
      }
    }, 200);
  });
}
