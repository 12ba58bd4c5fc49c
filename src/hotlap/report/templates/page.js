"use strict";
(function () {
  const charts = Array.from(document.querySelectorAll(".chart"));
  const options = { responsive: true, displayModeBar: false, showTips: false };
  for (const chart of charts) {
    const figure = JSON.parse(document.getElementById(chart.id.replace("chart-", "figure-")).textContent);
    Plotly.newPlot(chart, figure.data, figure.layout, options);
  }
})();
