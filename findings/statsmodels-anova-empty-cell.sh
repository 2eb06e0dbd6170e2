#!/usr/bin/env bash
# Guess: anova_lm(typ=2) of statsmodels compares nested models, so that a factorial design of which one
# combination is missing is tested correctly.
# Real: a 2 x 3 design without one of its six cells has one degree of freedom for the interaction. The table
# reports two, twice the sum of squares that the nested models differ by, and nan for one main effect; typ=1 gives
# a third sum of squares. There is a warning of the rank, but no error. Comparing the models by their residuals is correct.
# Package: statsmodels 0.15.0 of PyPI. Source: github.com/statsmodels/statsmodels
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check statsmodels==0.15.0 numpy==2.4.6 pandas==3.1.1

cat > anova.py <<'EOF'
import warnings

import pandas as pd
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

warnings.simplefilter("ignore")
times = {"xp": (9, 12, 10), "xq": (14, 11, 13), "xr": (10, 10, 13), "yp": (20, 17, 18), "yq": (19, 23, 22)}
table = pd.DataFrame([(name[0], name[1], time) for name, own in times.items() for time in own], columns=["a", "b", "time"])


def residuals(formula):
    model = ols(formula, table).fit()
    return model.ssr, model.df_resid


whole, without = residuals("time ~ C(a) * C(b)"), residuals("time ~ C(a) + C(b)")
print(f"nested models: {without[0] - whole[0]:.4f} on {without[1] - whole[1]:.0f}")
for kind in (1, 2):
    found = anova_lm(ols("time ~ C(a) * C(b)", table).fit(), typ=kind)
    row, main = found.loc["C(a):C(b)"], found.loc["C(a)", "sum_sq"]
    print(f"typ={kind}: {row['sum_sq']:.4f} on {row['df']:.0f}, C(a) {main:.4f}")
EOF
venv/bin/python anova.py | tee seen

[[ $(sed -n 1p seen) == "nested models: 0.3333 on 1" ]] || changed "the models differ by $(sed -n 1p seen)"
[[ $(sed -n 2p seen) == "typ=1: 0.6101 on 2, C(a) 260.1000" ]] || changed "$(sed -n 2p seen)"
[[ $(sed -n 3p seen) == "typ=2: 0.6667 on 2, C(a) nan" ]] || changed "$(sed -n 3p seen)"
