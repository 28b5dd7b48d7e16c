import { randomBytes } from "node:crypto"

/** An image of a request, and its placeholder in the engine's body. */
export interface ImagePlace {
  /** The path of its URL in the request. */
  readonly param: string
  /** A `data:` or `https:` URL, unchecked. */
  readonly url: string
  /** A complete JSON string. With the suffix `:type` or `:data` if the engine needs these separately. */
  readonly placeholder: string
}

/** An image that the model accepts. */
export interface CheckedImage {
  readonly mediaType: "image/png" | "image/jpeg"
  readonly base64: string
}

/** The images of one request, in order. */
export class ImagePlaces {
  readonly list: Array<ImagePlace> = []
  // Unpredictable, so a caller's text cannot be mistaken for a placeholder.
  readonly #nonce = randomBytes(16).toString("hex")

  /** Adds an image and returns its placeholder. */
  add(param: string, url: string): string {
    const placeholder = `image:${this.#nonce}:${this.list.length}`
    this.list.push({ param, url, placeholder })
    return placeholder
  }
}

/** Replaces the placeholders in the serialized body with the images. */
export const fillPlaces = (body: string, places: ReadonlyArray<ImagePlace>, images: ReadonlyArray<CheckedImage>): string => {
  const parts = [body]
  for (const [index, { placeholder }] of places.entries()) {
    const image = images[index]
    if (image === undefined) continue
    // Base64 and media types contain no characters that JSON escapes.
    for (const [suffix, text] of [
      [":type", image.mediaType],
      [":data", image.base64],
      ["", `data:${image.mediaType};base64,${image.base64}`]
    ]) {
      const place = `"${placeholder}${suffix}"`
      for (let at = 0; at < parts.length; at++) {
        const [head = "", ...tail] = parts[at]?.split(place) ?? []
        if (tail.length > 0) parts.splice(at, 1, head, ...tail.flatMap((part) => [`"${text}"`, part]))
      }
    }
  }
  return parts.join("")
}
