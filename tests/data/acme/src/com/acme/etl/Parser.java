package com.acme.etl;

/** Turns a number into text and back, slowly. */
public final class Parser {
    private Parser() {}

    /** A checksum of the digits of the numbers below n. */
    public static long digits(long n) {
        long sum = 0;
        for (long each = 0; each < n; each++) {
            sum += digit(each);
        }
        return sum;
    }

    private static int digit(long number) {
        int sum = 0;
        for (long rest = number * 31 + 7; rest > 0; rest /= 10) {
            sum += (int) (rest % 10);
        }
        return sum;
    }
}
