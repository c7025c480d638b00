"""How hard a question is: the truth, the methods, and how often they are right."""
