"""Lets the tests of both distributions be imported side by side: ``tests`` and ``qa.tests``."""
