/** Words by which a failure's text says what to do about it. */
export const saysWhatToDo = /\b(?:Try|Choose|Ask)\b/
