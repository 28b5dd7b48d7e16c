import { deflateSync } from "node:zlib"
import { initialImageProfile } from "@seatrial/domain"

/** The limits of the first models with image input. */
export const limits = { ...initialImageProfile, processor_revision: "c".repeat(40) }

const crcTable = Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
  return value >>> 0
})
const crc = (bytes: Buffer) => {
  let value = 0xffffffff
  for (const byte of bytes) value = (crcTable[(value ^ byte) & 255] ?? 0) ^ (value >>> 8)
  return (value ^ 0xffffffff) >>> 0
}

const u16 = (value: number) => Buffer.from([value >> 8, value & 255])
const u32 = (value: number) => Buffer.from([value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255])

/** A chunk of a PNG. */
export const pngChunk = (type: string, data: Buffer): Buffer => {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data])
  return Buffer.concat([u32(data.length), typed, u32(crc(typed))])
}

export const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export const ihdr = (width: number, height: number): Buffer => pngChunk("IHDR", Buffer.concat([u32(width), u32(height), Buffer.from([1, 0, 0, 0, 0])]))

/** A complete PNG: black, one bit per pixel. */
export const png = (width: number, height: number): Buffer => {
  const data = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height), { level: 9 })
  return Buffer.concat([pngSignature, ihdr(width, height), pngChunk("IDAT", data), pngChunk("IEND", Buffer.alloc(0))])
}

/** A segment of a JPEG. */
export const segment = (marker: number, data: Buffer): Buffer => Buffer.concat([Buffer.from([0xff, marker]), u16(data.length + 2), data])

/** The header of a frame with one component. */
export const frame = (width: number, height: number, marker = 0xc0): Buffer =>
  segment(marker, Buffer.concat([Buffer.from([8]), u16(height), u16(width), Buffer.from([1, 1, 0x11, 0])]))

const start = Buffer.from([0xff, 0xd8])
const scan = Buffer.concat([segment(0xda, Buffer.from([1, 1, 0, 0, 63, 0])), Buffer.from([0x12, 0x34])])
const end = Buffer.from([0xff, 0xd9])

/** A JPEG of these segments and this number of scans. Its image data is invalid. */
export const jpegOf = (segments: ReadonlyArray<Buffer>, scans = 1): Buffer =>
  Buffer.concat([start, ...segments, ...Array.from({ length: scans }, () => scan), end])

const jfif = segment(0xe0, Buffer.from("JFIF\0\x01\x01\0\0\x01\0\x01\0\0", "latin1"))

export const jpeg = (width: number, height: number, scans = 1): Buffer => jpegOf([jfif, frame(width, height)], scans)

/** The image padded with zeros, which decoders ignore. */
export const padded = (image: Buffer, length: number): Buffer => Buffer.concat([image, Buffer.alloc(length - image.length)])

export const dataUrl = (image: Buffer, type = "image/png"): string => `data:${type};base64,${image.toString("base64")}`
