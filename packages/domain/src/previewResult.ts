import type { ModelCapabilities } from "./catalog.ts"
import type { PreviewPlacement } from "./classRoom.ts"
import type { Fit } from "./fit.ts"
import type { RefusalCode } from "./repository.ts"
import type { ServingSettings } from "./serving.ts"

export interface PreviewSource {
  readonly kind: "model_hub"
  readonly repo: string
  readonly ref: string | null
  readonly commit: string | null
}

/** The adapter of a preview, if its repository holds one: its rank and the pinned base. */
export interface PreviewAdapter {
  readonly rank: number
  readonly base: { readonly repo: string; readonly commit: string }
}

export interface DerivedPreview {
  readonly object: "deployment_preview"
  readonly kind: "derived"
  readonly source: PreviewSource
  /** Absent if the repository holds a complete model. */
  readonly adapter?: PreviewAdapter
  readonly architecture: string
  readonly license: string | null
  readonly dtype: string
  readonly quantization: string
  readonly weights_bytes: number
  /** Complete settings that can be pasted into a create request. */
  readonly serving: ServingSettings
  readonly fit: Fit
  /** Other host classes that fit, cheapest first. */
  readonly alternatives: ReadonlyArray<Fit>
  /** Which of these host classes have free GPUs now; absent if that is not known. */
  readonly placement?: PreviewPlacement
  readonly capabilities: ModelCapabilities
}

export interface RefusedPreview {
  readonly object: "deployment_preview"
  readonly kind: "refused"
  readonly source: PreviewSource
  readonly reason: { readonly code: RefusalCode; readonly message: string }
  readonly remedy: { readonly message: string; readonly serving: ServingSettings | null }
}

export type Preview = DerivedPreview | RefusedPreview

export const refusedPreview = (
  source: PreviewSource,
  code: RefusalCode,
  message: string,
  remedy: string,
  serving: ServingSettings | null = null
): RefusedPreview => ({ object: "deployment_preview", kind: "refused", source, reason: { code, message }, remedy: { message: remedy, serving } })
