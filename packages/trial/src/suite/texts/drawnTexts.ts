import { drawer } from "../../promptTokens.ts"
import { likelihoodTexts } from "./likelihoodTexts.ts"

const prose = likelihoodTexts.slice(0, 3).map(({ text }) => text)
const sentences = prose.flatMap((text) => text.split(/(?<=\.) /u))

/** The different words of the suite's prose. */
export const proseWords = [...new Set(prose.join(" ").match(/\b[a-z]{3,}\b/g))]

/** Characters that are more than the tokens of a scored text in any tokenizer for words. */
const characters = 1_600

/** Texts that no other trial has: sentences of the suite's prose in an order that the seed determines. */
export const drawnTexts = (seed: number, count: number): ReadonlyArray<string> => {
  const draw = drawer(seed)
  return Array.from({ length: count }, () => {
    let text = ""
    while (text.length < characters) text += `${sentences[draw(sentences.length)] ?? ""} `
    return text
  })
}

/**
 * Texts of words of the suite's prose, each drawn by the seed. Hardly any run of words occurs in another text. `words`:
 * the number of words of each text.
 */
export const drawnWords = (seed: number, count: number, words: number): ReadonlyArray<string> => {
  const draw = drawer(seed)
  return Array.from({ length: count }, () => Array.from({ length: words }, () => proseWords[draw(proseWords.length)] ?? "").join(" "))
}

/** Prompts that a model continues: pieces of the suite's prose from places that the seed determines. */
export const drawnBeginnings = (seed: number, count: number): ReadonlyArray<string> => {
  const draw = drawer(seed)
  return Array.from({ length: count }, (_, index) => {
    const text = prose[index % prose.length] ?? ""
    const from = draw(text.length - 160)
    return text.slice(text.indexOf(" ", from) + 1, text.indexOf(" ", from + 60))
  })
}
