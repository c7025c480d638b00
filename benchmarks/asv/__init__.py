"""Benchmarks that asv runs; see ../asv.conf.json."""
