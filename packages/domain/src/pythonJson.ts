const quote = 0x22
const backslash = 0x5c
const words: ReadonlyMap<number, string> = new Map([
  [0x49, "Infinity"],
  [0x4e, "NaN"]
])
const isWord = (text: string | undefined) => text !== undefined && /\w/.test(text)

/**
 * Converts the output of Python's `json` module to JSON. Published configurations contain `Infinity` (Mamba 2's
 * `time_step_limit`), which every engine accepts. `Infinity` and `NaN` become a number outside of the range of any
 * valid value, so that a reader of the field rejects it. String literals do not change. One linear pass for any input.
 */
export const jsonOfPython = (text: string): string => {
  if (!/Infinity|NaN/.test(text)) return text
  let json = ""
  let from = 0
  let inText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) inText = !inText
    else if (inText && code === backslash) at++
    const word = inText ? undefined : words.get(code)
    if (word === undefined || !text.startsWith(word, at) || isWord(text[at - 1]) || isWord(text[at + word.length])) continue
    json += `${text.slice(from, at)}1e999`
    from = at + word.length
    at = from - 1
  }
  return json + text.slice(from)
}
