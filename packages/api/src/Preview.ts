import {
  Commit,
  HostClassName,
  ModelCapabilities,
  PreviewPlacement,
  RefusalCode,
  RequestedContext,
  RequestedYarnFactor,
  ServingRequest,
  ServingSettings,
  Source,
  Yarn
} from "@seatrial/domain"
import { Schema } from "effect"

const Bytes = Schema.Int
const Interval = Schema.Struct({ low: Bytes, high: Bytes })

const Fit = Schema.Struct({
  verdict: Schema.Literals(["fits", "tight"]),
  host_class: HostClassName,
  gpu_pool: Schema.String,
  gpu_count: Schema.Int,
  gpu_memory_bytes: Bytes,
  weights_bytes: Bytes,
  kv_cache_bytes: Bytes,
  kv_bytes_per_token: Bytes,
  overhead_bytes: Interval,
  headroom_bytes: Interval,
  max_context: Schema.Int,
  concurrent_sequences: Schema.Int,
  calibrated: Schema.Boolean,
  unmeasured: Schema.optionalKey(Schema.Literal(true))
}).annotate({ identifier: "Fit" })

const PinnedSource = Schema.Struct({
  kind: Schema.Literal("model_hub"),
  repo: Schema.String,
  ref: Schema.NullOr(Schema.String),
  commit: Schema.NullOr(Schema.toEncoded(Commit))
}).annotate({ identifier: "PinnedSource" })

/** A LoRA adapter: its rank, and the base model that it is pinned to. */
const PreviewAdapter = Schema.Struct({
  rank: Schema.Int,
  base: Schema.Struct({ repo: Schema.String, commit: Schema.toEncoded(Commit) })
}).annotate({ identifier: "PreviewAdapter" })

/** An addition to the contract: the free GPUs by host class, as the operator last observed them. */
const Placement = PreviewPlacement.annotate({ identifier: "PreviewPlacement" })

const Settings = ServingSettings.annotate({ identifier: "ServingSettings" })

/** The source can be served. `serving` is complete and can be used as is in a create. */
export const DerivedPreview = Schema.Struct({
  object: Schema.Literal("deployment_preview"),
  kind: Schema.Literal("derived"),
  source: PinnedSource,
  adapter: Schema.optionalKey(PreviewAdapter),
  architecture: Schema.String,
  license: Schema.NullOr(Schema.String),
  dtype: Schema.String,
  quantization: Schema.String,
  weights_bytes: Bytes,
  serving: Settings,
  fit: Fit,
  alternatives: Schema.Array(Fit),
  placement: Schema.optionalKey(Placement),
  capabilities: ModelCapabilities
}).annotate({ identifier: "DerivedPreview" })

/** The source cannot be served as requested: the reason, and what to do about it. */
export const RefusedPreview = Schema.Struct({
  object: Schema.Literal("deployment_preview"),
  kind: Schema.Literal("refused"),
  source: PinnedSource,
  reason: Schema.Struct({ code: RefusalCode, message: Schema.String }),
  remedy: Schema.Struct({ message: Schema.String, serving: Schema.NullOr(Settings) })
}).annotate({ identifier: "RefusedPreview" })

export const Preview = Schema.Union([DerivedPreview, RefusedPreview])

/** Serving settings in the input of previews and creates. */
export const Serving = Schema.Struct({
  ...ServingRequest.fields,
  max_context: Schema.optionalKey(RequestedContext),
  yarn: Schema.optionalKey(Schema.Struct({ ...Yarn.fields, factor: RequestedYarnFactor }))
}).annotate({ identifier: "ServingRequest" })

export const PreviewPayload = Schema.Struct({ source: Source, serving: Schema.optionalKey(Serving) }).annotate({ identifier: "PreviewDeployment" })
export type PreviewPayload = typeof PreviewPayload.Type
