import { initialImageProfile, type ModelConfig, type ModelShape, readTemplate, type ServedContract } from "@seatrial/domain"
import { Predicate } from "effect"

/**
 * Models whose images are served: both engines have them and what prepares their images as their own code, the size of their tower and what it makes of the largest
 * image are stated in `config.json`, and each image is one. Those that cut an image into tiles take memory that nothing states beforehand; they are served as text.
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

/** Whether images are to be served, as far as the model decides: its architecture is known to see, and its chat template has a place for them. */
export const sees = (config: ModelConfig, chatTemplate: string | null): boolean =>
  seeing.has(config.architecture) && hasTower(config) && readTemplate(chatTemplate).images

/** How many images a request may bring; null where nothing was set. */
export const imagesAllowed = (limit: unknown): number | null => (Predicate.hasProperty(limit, "image") && typeof limit.image === "number" ? limit.image : null)

/** The limits of images of a model that was started with that limit; null where it takes none. */
export const servedImages = (config: ModelConfig, limit: unknown): ServedContract["imageInput"] => {
  const allowed = imagesAllowed(limit) ?? 0
  return allowed < 1 || !seeing.has(config.architecture) || !hasTower(config)
    ? null
    : { ...initialImageProfile, max_images: Math.min(initialImageProfile.max_images, allowed) }
}

/** What is set where images are to be served, and nobody has set it otherwise. */
export const imageLimits = { image: initialImageProfile.max_images, video: 0 } as const

/** Bytes of the widest layer of the tower at the largest image: what comes in, the inner layer and its product, in 16 bits. */
export const towerBytes = ({ hidden_size, intermediate_size, patches }: NonNullable<ModelShape["vision"]>): number =>
  patches * 2 * (3 * intermediate_size + 6 * hidden_size)
