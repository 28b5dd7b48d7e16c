import { type Seams, sound } from "./Seams.ts"

/**
 * Decodes the bytes of tokens into text that can be sent: only complete characters, and nothing that may become a stop
 * string.
 */
export class TextStream {
  private readonly stops: ReadonlyArray<string>
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  private held = ""

  private readonly seams: Seams

  constructor(stops: ReadonlyArray<string>, seams: Seams = sound) {
    this.stops = stops
    this.seams = seams
  }

  /** Returns text that is final, and the stop string that ended it, if any. */
  push(bytes: Uint8Array): { readonly text: string; readonly stop: string | null } {
    const text = this.held + this.decoder.decode(bytes, { stream: this.seams.splitsCharacters !== true })
    let end = -1
    let stopString: string | null = null
    for (const stop of this.stops) {
      const at = text.indexOf(stop)
      if (at >= 0 && (end < 0 || at < end)) {
        end = at
        stopString = stop
      }
    }
    if (stopString !== null) {
      this.held = ""
      return { text: text.slice(0, end), stop: stopString }
    }
    const keep = this.seams.holdsStops === false ? 0 : this.possibleStop(text)
    this.held = text.slice(text.length - keep)
    return { text: text.slice(0, text.length - keep), stop: null }
  }

  /**
   * Returns text that was held back for a stop string. The bytes of an incomplete character are dropped, as in vLLM.
   */
  finish(): string {
    const text = this.held
    this.held = ""
    return text
  }

  /** The length of the longest end of `text` that is the beginning of a stop string. */
  private possibleStop(text: string): number {
    let longest = 0
    for (const stop of this.stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) {
          longest = length
          break
        }
      }
    }
    return longest
  }
}
