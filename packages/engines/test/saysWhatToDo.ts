/** Words of a failure text that tell the user what to do. */
export const saysWhatToDo = /\b(?:Try|Choose|Ask)\b/
