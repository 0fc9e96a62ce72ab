// SPDX-License-Identifier: Apache-2.0
// Small things that drawings are made of.
"use strict";

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

// The end of a text that fits into so many pixels.
function fitting(context, text, room) {
  while (text.length > 4 && context.measureText(text).width > room) {
    text = tail(text, Math.min(text.length - 1, Math.floor((text.length * room) / context.measureText(text).width)));
  }
  return text;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return Math.max(1, [1, 2, 5, 10].find((one) => one * power >= least) * power);
}

function diamond(context, x, y, size) {
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.fill();
}
