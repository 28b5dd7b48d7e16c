import {
  type CatalogModel,
  type EngineWire,
  earliestCapabilities,
  microsToDollars,
  type Prices,
  publicCapabilities,
  storedCapabilities
} from "@seatrial/domain"
import type { ServedModel } from "./Catalog.ts"

const stored = ({ capabilities }: ServedModel) => storedCapabilities(capabilities, () => earliestCapabilities)

/**
 * A served model as catalogs list it. Facts that older revisions did not store default to the behavior of the first
 * versions, as in the gateway.
 */
export const catalogModel = (served: ServedModel, ownedBy: string, prices: Prices, wire: EngineWire): CatalogModel => ({
  id: served.model,
  object: "model",
  created: Math.floor(served.createdAt / 1000),
  owned_by: ownedBy,
  display_name: served.displayName,
  hf_repo: served.hfRepo,
  hf_revision: served.hfRevision,
  config_revision: served.revisionId,
  dtype: served.dtype,
  quantization: served.quantization,
  max_model_len: served.maxModelLen,
  context_window: served.maxModelLen,
  context_length: served.maxModelLen,
  engine: served.runtime,
  engine_version: served.engineVersion,
  price_in_micros_per_mtok: prices.input_micros_per_mtok,
  price_out_micros_per_mtok: prices.output_micros_per_mtok,
  price_cache_read_micros_per_mtok: prices.cache_read_micros_per_mtok,
  price_cache_write_micros_per_mtok: prices.cache_write_micros_per_mtok,
  pricing: { input: microsToDollars(prices.input_micros_per_mtok), output: microsToDollars(prices.output_micros_per_mtok) },
  status: served.status,
  ...(served.model.includes("/") ? stored(served) : publicCapabilities(wire, stored(served))),
  capabilities_verified_at: served.verifiedAt === null ? null : Math.floor(served.verifiedAt / 1000)
})
