"use strict";
(function () {
  const charts = Array.from(document.querySelectorAll(".chart"));
  const options = { responsive: true, displayModeBar: false, showTips: false };
  for (const chart of charts) {
    const figure = JSON.parse(document.getElementById(chart.id.replace("chart-", "figure-")).textContent);
    Plotly.newPlot(chart, figure.data, figure.layout, options);
  }
  // Paper is narrower than most screens: the charts are drawn anew for it, and back again.
  window.addEventListener("beforeprint", function () {
    for (const chart of charts) {
      Plotly.relayout(chart, { width: Math.min(chart.clientWidth, 680), autosize: false });
    }
  });
  window.addEventListener("afterprint", function () {
    for (const chart of charts) {
      Plotly.relayout(chart, { width: null, autosize: true });
    }
  });
})();
