/** The bytes that a base64 text stands for, told by its length alone; null where no text of that length with that padding is base64. */
const decodedLength = (text: string): number | null => {
  if (text.length % 4 !== 0) return null
  return (text.length / 4) * 3 - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0)
}

/**
 * Decodes base64 with padding and without spaces, of at most `limit` bytes. `long`: it stands for more, and was not decoded. `invalid`: it is none; a decoder that skips
 * over what it does not know would make other bytes of it than another.
 */
export const readBase64 = (text: string, limit: number): Buffer | "long" | "invalid" => {
  const length = decodedLength(text)
  if (length === null) return "invalid"
  if (length > limit) return "long"
  const bytes = Buffer.from(text, "base64")
  // Node leaves out what it does not know, which makes the result shorter, and knows the alphabet for addresses too.
  return bytes.length !== length || text.includes("-") || text.includes("_") ? "invalid" : bytes
}
