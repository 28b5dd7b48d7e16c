import type { Prices } from "@seatrial/domain"

/** IDs that all examples of the OpenAPI document share. */
export const exampleIds = {
  organization: "org_01m7yy6h8me2ta2pf0c1c5r8n4",
  key: "key_01m7yy6h8xf4gt6q9ypd3vqz1c",
  user: "usr_01m7yy6h8sffnrx2n6e8v6zv0m",
  model: "mdl_01m7yy6j3ve4mac6enberh3t2c",
  revision: "rev_01m7yy6k0be8x9cqkf1t5e2w7s",
  deployment: "dep_01m7yy6j3vev1szahpypqjejhn",
  request: "req_01m7yy6j10e68sjmjgj4e3zctx",
  suspicion: "sus_01m7yy6j3wfz2b40s9rj3m8k6e",
  auditEvent: "aud_01m7yy6j3wfz2b40s9rj3m8k6d"
} as const

/** Commit of the example model. */
export const exampleCommit = "77c4b35b397353ec9b348d6f31999f4f12953632"
/** Rates of a model that its organization pays for by GPU time. */
export const zeroRates: Prices = { input_micros_per_mtok: "0", output_micros_per_mtok: "0", cache_read_micros_per_mtok: "0", cache_write_micros_per_mtok: "0" }
