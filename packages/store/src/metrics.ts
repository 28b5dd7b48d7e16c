import { counter, gauge, histogram } from "@seatrial/domain"

/** Metrics of the store, in every program that uses it. */
export const storeMetrics = {
  keyLookUps: counter("seatrial_store_key_lookups_total", {
    labels: ["result"],
    unit: "look-ups",
    meaning:
      "API keys that were looked up: hit if the program remembered the key, else miss; refused if it may not exist and its address sent too many of these"
  }),
  commitSeconds: histogram("seatrial_store_commit_seconds", [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5], {
    labels: [],
    unit: "seconds",
    meaning: "From when the first of the rows that share a commit was handed in until they were committed: the lag of request records"
  }),
  spoolBytes: gauge("seatrial_store_spool_bytes", {
    labels: [],
    unit: "bytes",
    meaning: "Records of requests that wait on the local disk for the database"
  }),
  spooledRows: counter("seatrial_store_spooled_rows_total", {
    labels: [],
    unit: "rows",
    meaning: "Rows of request records that the database did not take in time and the spool did"
  }),
  spoolRefusedRows: counter("seatrial_store_spool_refused_rows_total", {
    labels: [],
    unit: "rows",
    meaning: "Rows of the spool that the database refused for what they are: they are put aside beside the spool, and somebody must look"
  }),
  spendAlerts: counter("seatrial_store_spend_alerts_total", {
    labels: ["of", "allowance", "percent"],
    unit: "alerts",
    meaning:
      "Allowances of which 50, 80 or 100 percent were used: the balance, or the limit of the day or month, of an organization or of a key; each is counted once, by one program"
  }),
  probeSeconds: histogram("seatrial_store_probe_seconds", [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15], {
    labels: ["outcome"],
    unit: "seconds",
    meaning: "How long the check of the schema took every ten seconds, the wait for a connection of the pool included: done or failed"
  })
}
