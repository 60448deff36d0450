"""Fleets: the bags of many robots replayed on Dask into one table, and the joints that wear."""
