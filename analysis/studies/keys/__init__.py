"""Which setting did it: the effects of the factors of a design, one number a cell in, terms with intervals and one sentence out."""
