import { gauge, histogram } from "@seatrial/domain"

/** What the gateway tells of its requests. */
export const gatewayMetrics = {
  requestSeconds: histogram("seatrial_gateway_request_seconds", [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 3_600], {
    labels: ["endpoint", "status"],
    unit: "seconds",
    meaning: "From a request's headers to the end of its answer, by endpoint (else other) and the class of the status; gone where the caller left first"
  }),
  inFlight: gauge("seatrial_gateway_requests_in_flight", { labels: [], unit: "requests", meaning: "Requests that are being answered" })
}
