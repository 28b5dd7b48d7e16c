const quote = 0x22
const backslash = 0x5c
const words: ReadonlyMap<number, string> = new Map([
  [0x49, "Infinity"],
  [0x4e, "NaN"]
])
const isWord = (text: string | undefined) => text !== undefined && /\w/.test(text)

/**
 * The JSON of what Python's `json` has written: configurations of published models have `Infinity`, which every engine reads (Mamba 2's `time_step_limit`). In its place, and in
 * that of `NaN`, comes a number beyond all others, so that whoever needs it finds no value of any model. Texts stay as they are. In one pass, whatever it is given.
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
