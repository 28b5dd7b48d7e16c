import type { ImageInput } from "@seatrial/domain"
import { type Refusal, unsupportedValue } from "../refusals.ts"
import type { CheckedImage, ImagePlace } from "./ImagePlaces.ts"
import {
  emptyImageFile,
  imageFileTooLarge,
  imageParseError,
  imageTooLarge,
  invalidBase64Image,
  invalidImageUrl,
  tooManyImages,
  unsupportedImageMediaType
} from "./imageRefusals.ts"
import { imageUrl } from "./imageUrl.ts"
import { readBase64 } from "./readBase64.ts"
import { readImageHeader } from "./readImageHeader.ts"

/** An image that must be downloaded. */
export interface RemoteImage {
  readonly param: string
  readonly url: URL
}

type Limits = typeof ImageInput.Type

/** Checks the bytes of an image: their actual type, regardless of the declared one, and the size in pixels. */
export const checkImageBytes = (bytes: Buffer, limits: Limits, param: string): CheckedImage["mediaType"] | Refusal => {
  if (bytes.length === 0) return emptyImageFile("The image is empty.", param)
  if (bytes.length > limits.max_bytes_per_image) return imageFileTooLarge(`An image may have at most ${limits.max_bytes_per_image} bytes.`, param)
  const header = readImageHeader(bytes)
  if (header === "unreadable") return imageParseError("The image's size cannot be read from its headers.", param)
  if (header === "unknown" || !limits.formats.includes(header.format)) {
    return unsupportedImageMediaType(`The image must be one of ${limits.formats.join(", ")}. Its bytes decide, not the declared type.`, param)
  }
  const { format, height, width } = header
  if (width > limits.max_side_pixels || height > limits.max_side_pixels || width * height > limits.max_total_pixels) {
    return imageTooLarge(
      `The image has ${width} x ${height} pixels; each side may have at most ${limits.max_side_pixels}, and the image ${limits.max_total_pixels}.`,
      param
    )
  }
  return format === "png" ? "image/png" : "image/jpeg"
}

/** The start of the base64 text in a `data:` URL; -1 if there is none. The declared media type is ignored. */
const dataStart = (url: string): number => /^data:[^,]{0,256};base64,/i.exec(url)?.[0].length ?? -1

const checkInline = (url: string, limits: Limits, param: string): CheckedImage | Refusal => {
  const start = dataStart(url)
  if (start === -1) return invalidImageUrl("The image must be `data:image/...;base64,...` or an https URL.", param)
  const base64 = url.slice(start)
  const bytes = readBase64(base64, limits.max_bytes_per_image)
  if (bytes === "long") return imageFileTooLarge(`An image may have at most ${limits.max_bytes_per_image} bytes.`, param)
  if (bytes === "invalid") return invalidBase64Image("The image is not valid base64. Send it with padding and without white space.", param)
  const mediaType = checkImageBytes(bytes, limits, param)
  return typeof mediaType === "string" ? { mediaType, base64 } : mediaType
}

const checkSource = ({ param, url }: ImagePlace, limits: Limits): CheckedImage | RemoteImage | Refusal => {
  const inline = /^data:/i.test(url)
  if (!limits.sources.includes(inline ? "base64" : "https")) return invalidImageUrl(`Images are accepted as ${limits.sources.join(" or ")} only.`, param)
  if (inline) return checkInline(url, limits, param)
  const remote = imageUrl(url)
  if (remote !== null) return { param, url: remote }
  return invalidImageUrl("The image must be `data:image/...;base64,...` or an https URL with a host name, without port, user name and password.", param)
}

/** Refuses a request with more images than its model accepts, including images of earlier messages. */
export const checkImageCount = (images: ReadonlyArray<ImagePlace>, limits: Limits | null): Refusal | null => {
  const extra = images[limits?.max_images ?? 0]
  if (extra === undefined) return null
  if (limits === null) return unsupportedValue("The model does not accept images.", extra.param)
  return tooManyImages(`A request may have at most ${limits.max_images} images, including images of earlier messages; it has ${images.length}.`, extra.param)
}

/**
 * Checks all images of a request, including earlier messages and tool results, as far as possible without a
 * download.
 */
export const checkImages = (images: ReadonlyArray<ImagePlace>, limits: Limits): ReadonlyArray<CheckedImage | RemoteImage> | Refusal => {
  const checked: Array<CheckedImage | RemoteImage> = []
  for (const image of images) {
    const result = checkSource(image, limits)
    if ("code" in result) return result
    checked.push(result)
  }
  return checked
}
