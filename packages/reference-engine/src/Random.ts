/**
 * A seeded random number generator (sfc32 by Chris Doty-Humphrey). It uses only 32-bit integer arithmetic and gives the
 * same numbers on every machine.
 */
export class Random {
  private a: number
  private b: number
  private c: number
  private counter = 1

  /** `seed`: a 64-bit integer, with the precision of a number. */
  constructor(seed: number) {
    const magnitude = Math.abs(seed)
    this.a = magnitude >>> 0
    this.b = Math.floor(magnitude / 2 ** 32) >>> 0
    this.c = seed < 0 ? 0x9e3779b9 : 0x243f6a88
    for (let i = 0; i < 16; i++) this.word()
  }

  /** The next 32 bits, as a number from 0 to 4,294,967,295. */
  word(): number {
    const sum = (this.a + this.b + this.counter) | 0
    this.counter = (this.counter + 1) | 0
    this.a = this.b ^ (this.b >>> 9)
    this.b = (this.c + (this.c << 3)) | 0
    this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** A number from 0 (inclusive) to 1 (exclusive), in steps of 2^-32. */
  unit(): number {
    return this.word() / 2 ** 32
  }
}
