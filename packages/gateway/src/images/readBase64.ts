/**
 * The number of bytes that a base64 text encodes, computed from its length and padding. Null if that length is not
 * possible.
 */
const decodedLength = (text: string): number | null => {
  if (text.length % 4 !== 0) return null
  return (text.length / 4) * 3 - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0)
}

/**
 * Decodes base64 with padding and without white space, up to `limit` bytes. `long`: it encodes more bytes and was not
 * decoded. `invalid`: it is not strict base64, which lenient decoders may read differently.
 */
export const readBase64 = (text: string, limit: number): Buffer | "long" | "invalid" => {
  const length = decodedLength(text)
  if (length === null) return "invalid"
  if (length > limit) return "long"
  const bytes = Buffer.from(text, "base64")
  // Node skips unknown characters, which makes the result shorter, and also accepts the URL alphabet.
  return bytes.length !== length || text.includes("-") || text.includes("_") ? "invalid" : bytes
}
