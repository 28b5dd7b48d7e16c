/** Texts, which are left as they are, and the words for numbers that Python's `json` writes and reads beside those of JSON. */
const textOrWord = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b/g

/**
 * The JSON of what Python's `json` has written: configurations of published models have `Infinity`, which every engine reads (Mamba 2's `time_step_limit`). In its place, and in
 * that of `NaN`, comes a number beyond all others, so that whoever needs it finds no value of any model.
 */
export const jsonOfPython = (text: string): string =>
  /Infinity|NaN/.test(text) ? text.replace(textOrWord, (found) => (found.startsWith('"') ? found : found.startsWith("-") ? "-1e999" : "1e999")) : text
