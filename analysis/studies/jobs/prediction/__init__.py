"""Black boxes and white boxes that predict times of steps and jobs from factors, and how far they may be trusted where nobody measured."""
