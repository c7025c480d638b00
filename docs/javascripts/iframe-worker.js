// The theme searches in a worker, and a browser starts no worker for a page opened from disk.
// There, the same script runs in a hidden frame. (Material's offline plugin would load a shim for
// this from a CDN; it uses ours because "iframe-worker" is in the name.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href);
        script.onload = resolve;
        script.onerror = reject;
        inside.document.append(inside.document.createElement("html"));
        inside.document.documentElement.append(script);
        inside.document.close();
      });
    }

    postMessage(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(event));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
