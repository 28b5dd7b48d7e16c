import { crc32, deflateSync } from "node:zlib"

export type Pixel = readonly [red: number, green: number, blue: number]

/** A square picture. */
export interface Picture {
  /** Width in pixels; a multiple of 8. */
  readonly side: number
  /** Constant within each square of 8 by 8 pixels. */
  readonly pixel: (x: number, y: number) => Pixel
}

const dataUrl = (type: string, parts: ReadonlyArray<Uint8Array>) => `data:image/${type};base64,${Buffer.concat(parts).toString("base64")}`

const chunk = (name: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}

/** The picture as a PNG of 8 bits per color in a `data:` URL. */
export const pngOf = ({ pixel, side }: Picture): string => {
  const rows: Array<Buffer> = []
  for (let y = 0; y < side; y += 8) {
    const row = Buffer.alloc(1 + side * 3)
    for (let x = 0; x < side; x += 8) row.fill(Buffer.from(pixel(x, y)), 1 + x * 3, 1 + (x + 8) * 3)
    rows.push(...Array.from({ length: 8 }, () => row))
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return dataUrl("png", [signature, chunk("IHDR", header), chunk("IDAT", deflateSync(Buffer.concat(rows))), chunk("IEND", Buffer.alloc(0))])
}

const segment = (marker: number, data: ReadonlyArray<number>): Buffer => Buffer.from([0xff, marker, (data.length + 2) >> 8, (data.length + 2) & 0xff, ...data])

/**
 * The number of codes of each length from 1 to 16 bits, and their meaning: the table of the standard for the mean of a
 * block.
 */
const meanLengths = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
const meanCodes = ["00", "010", "011", "100", "101", "110", "1110", "11110", "111110", "1111110", "11111110", "111111110"]

/** A block of equal pixels has only its mean: one code marks its end. */
const endLengths = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
const endCode = "00"

/** The bits of the difference between a mean and the previous one: their number and their values. */
const differenceOf = (difference: number): string => {
  const length = difference === 0 ? 0 : Math.abs(difference).toString(2).length
  const bits = difference >= 0 ? difference : difference + 2 ** length - 1
  return (meanCodes[length] ?? "") + (length === 0 ? "" : bits.toString(2).padStart(length, "0"))
}

const clamp = (value: number) => Math.max(-128, Math.min(127, Math.round(value)))

/** Luminance and two color differences, centered on zero. */
const componentsOf = ([red, green, blue]: Pixel): ReadonlyArray<number> => [
  clamp(0.299 * red + 0.587 * green + 0.114 * blue - 128),
  clamp(-0.168736 * red - 0.331264 * green + 0.5 * blue),
  clamp(0.5 * red - 0.418688 * green - 0.081312 * blue)
]

/** The picture as a baseline JPEG in a `data:` URL. Each square of 8 by 8 pixels has one color. */
export const jpegOf = ({ pixel, side }: Picture): string => {
  const before = [0, 0, 0]
  let bits = ""
  for (let y = 0; y < side; y += 8) {
    for (let x = 0; x < side; x += 8) {
      for (const [index, mean] of componentsOf(pixel(x, y)).entries()) {
        bits += differenceOf(mean - (before[index] ?? 0)) + endCode
        before[index] = mean
      }
    }
  }
  const scan = (bits.padEnd(Math.ceil(bits.length / 8) * 8, "1").match(/.{8}/g) ?? []).flatMap((byte) => {
    const value = Number.parseInt(byte, 2)
    return value === 0xff ? [0xff, 0] : [value]
  })
  const size = [side >> 8, side & 0xff]
  const jfif = [0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0]
  return dataUrl("jpeg", [
    Buffer.from([0xff, 0xd8]),
    segment(0xe0, jfif),
    // The mean of a flat block is eight times the value of its pixels.
    segment(0xdb, [0, ...Array.from({ length: 64 }, () => 8)]),
    segment(0xc0, [8, ...size, ...size, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]),
    segment(0xc4, [0x00, ...meanLengths, ...meanCodes.keys()]),
    segment(0xc4, [0x10, ...endLengths, 0]),
    segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
    Buffer.from([...scan, 0xff, 0xd9])
  ])
}
