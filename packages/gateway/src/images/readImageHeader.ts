/** The type and size of an image, from its headers. */
export type ImageHeader =
  | { readonly format: "png" | "jpeg"; readonly width: number; readonly height: number }
  /** Neither a PNG nor a JPEG. */
  | "unknown"
  /** A PNG or JPEG whose size is missing or ambiguous. */
  | "unreadable"

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const jpegSignature = Buffer.from([0xff, 0xd8, 0xff])
const scanMarker = Buffer.from([0xff, 0xda])

/** Most scans of a JPEG. A decoder processes the complete image again for each scan. */
const maxScans = 64

const sized = (format: "png" | "jpeg", width: number, height: number): ImageHeader => (width === 0 || height === 0 ? "unreadable" : { format, width, height })

/** Whether there is a second header before the image data. Decoders would use the last one, so only one is allowed. */
const hasAnotherHeader = (bytes: Buffer): boolean => {
  for (let at = 33; at + 8 <= bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const type = bytes.toString("latin1", at + 4, at + 8)
    if (type === "IHDR") return true
    if (type === "IDAT" || type === "IEND") return false
  }
  return false
}

const readPng = (bytes: Buffer): ImageHeader => {
  if (bytes.length < 24 || bytes.readUInt32BE(8) !== 13 || bytes.toString("latin1", 12, 16) !== "IHDR" || hasAnotherHeader(bytes)) return "unreadable"
  return sized("png", bytes.readUInt32BE(16), bytes.readUInt32BE(20))
}

const hasTooManyScans = (bytes: Buffer): boolean => {
  let scans = 0
  for (let at = bytes.indexOf(scanMarker); at !== -1; at = bytes.indexOf(scanMarker, at + 2)) {
    if (++scans > maxScans) return true
  }
  return false
}

const standsAlone = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)

const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** The segments of a JPEG before its first scan: marker, position of the length, and length. */
function* segmentsOf(bytes: Buffer): Generator<{ readonly marker: number; readonly at: number; readonly length: number }> {
  for (let at = 2; at + 2 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) at += 1
    else if (standsAlone(marker)) at += 2
    else {
      // Not a segment, or a second start of image, end of image, or start of scan.
      if (marker === 0x00 || (marker >= 0xd8 && marker <= 0xda) || at + 4 > bytes.length) return
      const length = bytes.readUInt16BE(at + 2)
      if (length < 2) return
      yield { marker, at: at + 2, length }
      at += 2 + length
    }
  }
}

const readJpeg = (bytes: Buffer): ImageHeader => {
  let header: ImageHeader = "unreadable"
  for (const { at, length, marker } of segmentsOf(bytes)) {
    if (!isFrame(marker)) continue
    // Decoders differ in which of several frames they use, so only one is allowed.
    if (header !== "unreadable" || length < 8 || at + 8 > bytes.length) return "unreadable"
    header = sized("jpeg", bytes.readUInt16BE(at + 5), bytes.readUInt16BE(at + 3))
    if (header === "unreadable") return header
  }
  return header !== "unreadable" && hasTooManyScans(bytes) ? "unreadable" : header
}

/** Reads the actual type and the size in pixels of a PNG or JPEG from its headers, without decoding it. */
export const readImageHeader = (bytes: Buffer): ImageHeader => {
  if (bytes.subarray(0, 8).equals(pngSignature)) return readPng(bytes)
  if (bytes.subarray(0, 3).equals(jpegSignature)) return readJpeg(bytes)
  return "unknown"
}
