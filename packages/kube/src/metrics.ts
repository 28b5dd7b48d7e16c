import { counter, gauge, histogram } from "@seatrial/domain"

/** What a client of Kubernetes tells of itself. */
export const kubeMetrics = {
  leader: gauge("seatrial_kube_leader", { labels: ["name", "namespace"], unit: "0 or 1", meaning: "1 while this program holds the lease, else 0" }),
  renewals: counter("seatrial_kube_lease_renewals_total", {
    labels: ["name", "namespace", "outcome"],
    unit: "renewals",
    meaning: "Tries of the leader to renew its lease: renewed or failed"
  }),
  lastEventAge: gauge("seatrial_kube_watch_last_event_age_seconds", {
    labels: ["group", "resource", "namespace", "selector"],
    unit: "seconds",
    meaning: "Seconds since a watch last heard from the API server, bookmarks included"
  }),
  lists: counter("seatrial_kube_watch_lists_total", {
    labels: ["group", "resource", "namespace"],
    unit: "lists",
    meaning: "Whole lists that were read: the first of each watch, and one whenever it lost its place"
  }),
  queueDepth: gauge("seatrial_kube_queue_depth", { labels: ["queue"], unit: "keys", meaning: "Keys that are ready and wait for a worker" }),
  queueOldest: gauge("seatrial_kube_queue_oldest_seconds", {
    labels: ["queue"],
    unit: "seconds",
    meaning: "For how long the key has waited that has been ready for the longest"
  }),
  queueAdds: counter("seatrial_kube_queue_adds_total", { labels: ["queue"], unit: "adds", meaning: "Times that somebody asked for a pass over a key" }),
  queueRetries: counter("seatrial_kube_queue_retries_total", { labels: ["queue"], unit: "retries", meaning: "Passes that failed and are tried again" }),
  passSeconds: histogram("seatrial_kube_pass_seconds", [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30], {
    labels: ["queue", "outcome"],
    unit: "seconds",
    meaning: "How long a pass over a key took: done or failed. Those of the queue runs are the reconciler's"
  }),
  passErrors: counter("seatrial_kube_pass_errors_total", {
    labels: ["queue", "reason"],
    unit: "errors",
    meaning: "Failed passes by what the API server answered, else fault"
  })
}
