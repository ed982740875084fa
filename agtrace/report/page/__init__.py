"""The health report as a page: one HTML file that works offline in any browser."""
