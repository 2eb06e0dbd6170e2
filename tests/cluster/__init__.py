"""A package, unlike the other test folders: the cluster ends with it (scope `package`)."""
