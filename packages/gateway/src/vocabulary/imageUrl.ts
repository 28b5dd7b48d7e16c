import { type Check, members, text } from "./Check.ts"

const detail: Check = (value, at) => (value === "auto" ? undefined : at.unsupportedValue("only auto is supported"))

const imageUrlMembers = members({ url: text, detail }, ["url"])

/** `image_url` of a part. The image itself is checked later, together with all images of the request. */
export const imageUrl: Check = (value, at) => {
  const { url } = imageUrlMembers(value, at)
  return { url: at.image(String(url), "url") }
}
