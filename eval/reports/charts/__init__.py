"""Plots of a report as inline SVG. They name runs by letter only; the page has the legend."""
