"""Black-box and white-box models that predict times from factors, with held-out errors."""
