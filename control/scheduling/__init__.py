"""Order waiting jobs: policies and their scheduler, shared by simulator and real dispatcher."""
