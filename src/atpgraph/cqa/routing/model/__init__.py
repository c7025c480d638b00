"""The learned ranker: a conditional logit over the features, with calibrated confidence."""
