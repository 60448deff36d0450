"""How well is friction estimated? Cases, runs, references (oracle, Wiener) and the page that shows them."""
