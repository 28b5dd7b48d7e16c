import { counter, gauge, histogram } from "@seatrial/domain"

/** The metrics of a Kubernetes client. */
export const kubeMetrics = {
  leader: gauge("seatrial_kube_leader", { labels: ["name", "namespace"], unit: "0 or 1", meaning: "1 while this program holds the lease, else 0" }),
  renewals: counter("seatrial_kube_lease_renewals_total", {
    labels: ["name", "namespace", "outcome"],
    unit: "renewals",
    meaning: "Attempts of the leader to renew its lease: renewed or failed"
  }),
  lastEventAge: gauge("seatrial_kube_watch_last_event_age_seconds", {
    labels: ["group", "resource", "namespace", "selector"],
    unit: "seconds",
    meaning: "Seconds since the last data of a watch from the API server, including bookmarks"
  }),
  lists: counter("seatrial_kube_watch_lists_total", {
    labels: ["group", "resource", "namespace"],
    unit: "lists",
    meaning: "Complete lists that were read: the first of each watch, and one after each expiry of its position"
  }),
  queueDepth: gauge("seatrial_kube_queue_depth", { labels: ["queue"], unit: "keys", meaning: "Keys that are ready and wait for a worker" }),
  queueOldest: gauge("seatrial_kube_queue_oldest_seconds", {
    labels: ["queue"],
    unit: "seconds",
    meaning: "Waiting time of the key that has been ready for the longest time"
  }),
  queueAdds: counter("seatrial_kube_queue_adds_total", { labels: ["queue"], unit: "adds", meaning: "Requested passes over a key" }),
  queueRetries: counter("seatrial_kube_queue_retries_total", { labels: ["queue"], unit: "retries", meaning: "Failed passes that are retried" }),
  passSeconds: histogram("seatrial_kube_pass_seconds", [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30], {
    labels: ["queue", "outcome"],
    unit: "seconds",
    meaning: "Duration of a pass over a key, by outcome (done or failed). The reconciler's queue is named `runs`"
  }),
  passErrors: counter("seatrial_kube_pass_errors_total", {
    labels: ["queue", "reason"],
    unit: "errors",
    meaning: "Failed passes by reason: the error of the API server, or `fault` for every other error"
  })
}
