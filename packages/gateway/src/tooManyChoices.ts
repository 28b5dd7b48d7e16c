import { invalidParameter, type Refusal } from "./refusals.ts"

/** `choices`: of all prompts of the request together. */
export const tooManyChoices = ({ choices, prompts }: { readonly choices: number; readonly prompts: number }, most: number): Refusal =>
  invalidParameter(
    `A request to a public model can have at most ${most} choices, so that other requests are not delayed. This one has ${choices}${prompts === 1 ? "" : ` for ${prompts} prompts`}.`,
    prompts === 1 ? "n" : "prompt"
  )
