"""Who should answer this question.

Data flow one way: ``timeline`` (what was known when) → ``features`` → ``model`` (the learned
ranker) → ``baselines`` → ``evaluation``; and ``advice``, where the
:class:`~atpgraph.cqa.routing.advice.advisor.Advisor` turns a ranking into people to ask.
"""
