import { randomBytes } from "node:crypto"

/** An image that a request names, and what stands in the engine's body where it is to be. */
export interface ImagePlace {
  /** The path of its address in the request. */
  readonly param: string
  /** `data:` or `https:`, unchecked. */
  readonly url: string
  /** A JSON string by itself; with `:type` and `:data` behind it, where the engine wants these apart. */
  readonly placeholder: string
}

/** An image with which a model can be asked. */
export interface CheckedImage {
  readonly mediaType: "image/png" | "image/jpeg"
  readonly base64: string
}

/** The images of one request, in their order. */
export class ImagePlaces {
  readonly list: Array<ImagePlace> = []
  // Nobody can guess it: no words of the caller's are taken for a place.
  readonly #nonce = randomBytes(16).toString("hex")

  /** Notes an image and gives what is to stand in its place until it is known. */
  add(param: string, url: string): string {
    const placeholder = `image:${this.#nonce}:${this.list.length}`
    this.list.push({ param, url, placeholder })
    return placeholder
  }
}

/** Puts the images into the serialised body, each in its place. */
export const fillPlaces = (body: string, places: ReadonlyArray<ImagePlace>, images: ReadonlyArray<CheckedImage>): string => {
  const parts = [body]
  for (const [index, { placeholder }] of places.entries()) {
    const image = images[index]
    if (image === undefined) continue
    // Base64 and media types have nothing that JSON escapes.
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
