import { initialImageProfile, type ModelConfig, type ModelShape, readTemplate, type ServedContract } from "@seatrial/domain"
import { Predicate } from "effect"

/**
 * Models whose image input is served. Both engines contain the model and its image processor, `config.json` states the
 * size of the vision tower and the tokens of the largest image, and each image is processed as a whole. Models that cut
 * an image into tiles use an amount of memory that nothing states in advance, so only their text input is served.
 */
const seeing: ReadonlySet<string> = new Set([
  "Gemma3ForConditionalGeneration",
  "LlavaForConditionalGeneration",
  "Mistral3ForConditionalGeneration",
  "Qwen2VLForConditionalGeneration",
  "Qwen2_5_VLForConditionalGeneration",
  "Qwen3VLForConditionalGeneration",
  "Qwen3VLMoeForConditionalGeneration"
])

const hasTower = (config: ModelConfig): boolean => (config.shape?.vision ?? null) !== null

/** Whether the model allows image input: its architecture is listed, and its chat template has a place for images. */
export const sees = (config: ModelConfig, chatTemplate: string | null): boolean =>
  seeing.has(config.architecture) && hasTower(config) && readTemplate(chatTemplate).images

/** How many images a request may contain; null if no limit is set. */
export const imagesAllowed = (limit: unknown): number | null => (Predicate.hasProperty(limit, "image") && typeof limit.image === "number" ? limit.image : null)

/** The image limits of a model that was started with this limit; null if it accepts no images. */
export const servedImages = (config: ModelConfig, limit: unknown): ServedContract["imageInput"] => {
  const allowed = imagesAllowed(limit) ?? 0
  return allowed < 1 || !seeing.has(config.architecture) || !hasTower(config)
    ? null
    : { ...initialImageProfile, max_images: Math.min(initialImageProfile.max_images, allowed) }
}

/** The default limit for models whose image input is served. */
export const imageLimits = { image: initialImageProfile.max_images, video: 0 } as const

/**
 * Bytes of the largest layer of the vision tower for the largest image: input, inner layer and their product, with 16
 * bits per value.
 */
export const towerBytes = ({ hidden_size, intermediate_size, patches }: NonNullable<ModelShape["vision"]>): number =>
  patches * 2 * (3 * intermediate_size + 6 * hidden_size)
