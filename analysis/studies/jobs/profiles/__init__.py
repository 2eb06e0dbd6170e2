"""Jobs as workloads: where their time goes on which system, and which hyper-parameters reach an accuracy soonest. Steps are commands."""
