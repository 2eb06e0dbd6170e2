"""A package, unlike the other folders of tests: only of those pytest knows the end, and there the cluster goes (scope `package`)."""
