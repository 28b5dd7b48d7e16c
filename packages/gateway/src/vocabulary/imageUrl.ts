import { randomUUID } from "node:crypto"
import { type Check, members, text } from "./Check.ts"
import type { Checking } from "./Checking.ts"

// No caller can guess it, so that no text of a request can stand for an image.
const mark = `seatrial-image-${randomUUID()}-`

const detail: Check = (value, at) => (value === "auto" ? undefined : at.unsupportedValue("only auto is served"))

/** What goes into the engine's body for the image of that address: the image, or what stands for one that is still to be fetched. */
export const image = (url: string, at: Checking, ...deeper: ReadonlyArray<string | number>): string => {
  if (/^data:[^,]*;base64,/i.test(url)) return url
  if (!/^https:\/\//i.test(url)) return at.invalid("expected a data URL with base64 or an https URL", ...deeper)
  const placeholder = `${mark}${at.images.length};`
  at.images.push({ param: at.param(...deeper), url, placeholder })
  return placeholder
}

const given = members({ url: text, detail }, ["url"])

/** `image_url` of a part. */
export const imageUrl: Check = (value, at) => {
  const { url } = given(value, at)
  return { url: image(String(url), at, "url") }
}
