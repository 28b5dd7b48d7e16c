import { counter, gauge, histogram } from "@seatrial/domain"

/** Metrics of the server's requests. */
export const serverMetrics = {
  requestSeconds: histogram("seatrial_server_request_seconds", [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60], {
    labels: ["route", "method", "status"],
    unit: "seconds",
    meaning: "Time from a request's headers to the end of its response, by route of the contract (or other) and class of the status, for example 2xx"
  }),
  inFlight: gauge("seatrial_server_requests_in_flight", { labels: [], unit: "requests", meaning: "Requests in flight" }),
  rateLimited: counter("seatrial_server_rate_limited_total", { labels: ["route"], unit: "requests", meaning: "Requests refused with 429" })
}
