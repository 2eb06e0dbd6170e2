"""From traces to parameters: the project's own model, judged on rows it was not shown; the original's formulas; batches × power limits."""
