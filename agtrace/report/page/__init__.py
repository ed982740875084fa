"""The health report as a page: one HTML file that needs no network and opens in any browser."""
